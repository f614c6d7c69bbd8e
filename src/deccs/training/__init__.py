"""One training engine, and the pretraining of the autoencoder."""

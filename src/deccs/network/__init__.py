"""The autoencoder and how it computes."""

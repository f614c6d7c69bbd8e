"""Whether new data still look like those of the fit."""

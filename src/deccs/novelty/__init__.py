"""How unusual a row is, compared with rows that the fit has not seen."""

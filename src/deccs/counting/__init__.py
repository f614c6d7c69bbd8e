"""How many clusters there are, with evidence for every number tried, and how real each cluster is."""

"""The paper's experiments: settings per data set as data, runs, records, tables, figures."""

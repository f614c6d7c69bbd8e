"""Real tables: categories, dates and gaps, compared with what people do instead, on known classes."""

"""The yardstick: our methods and what people would use instead, over a folder of labeled data sets."""

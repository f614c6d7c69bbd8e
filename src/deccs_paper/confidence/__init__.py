"""Is confidence honest? Its figures on data with known classes, and on data without clusters."""

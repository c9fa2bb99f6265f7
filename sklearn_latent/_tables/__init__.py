"""Reading of tables: rows, blocks, words; gaps filled and columns to look at."""

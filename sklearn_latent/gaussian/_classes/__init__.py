"""Hidden classes of rows: networks of one graph, each with parameters of its own."""

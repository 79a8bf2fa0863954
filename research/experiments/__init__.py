"""One module for each table or figure, with the numbers that the paper prints beside it."""

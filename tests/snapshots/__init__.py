"""The public surface as text under version control: names, signatures and the help of every command."""

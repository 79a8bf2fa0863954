"""What a release is good for, from public facts and private output: it costs no ε and may be published."""

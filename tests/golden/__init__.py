"""What seeded releases and files of earlier versions hold: kept, so that nothing changes unnoticed."""

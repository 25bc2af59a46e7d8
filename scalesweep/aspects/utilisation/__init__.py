"""How much of what its devices could do a transformer's training uses: MFU and HFU."""

package engine

// fuse replaces patterns of steps of p by faster ones.
func fuse(p *program) error { return nil }

package coupling

import "github.com/mcompress/mcompress/pass"

// shapes reads shapes, axes and indices from attributes and constants of nodes, and writes them.
type shapes struct{ step *pass.Step }

package quantize

import "github.com/mcompress/mcompress/pass"

// Calibration is the group of options about calibration samples.
type Calibration = pass.Calibration

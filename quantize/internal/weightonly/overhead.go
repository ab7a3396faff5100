package weightonly

import (
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/rewrite"
)

// blockOverhead is likewise for blocks.
func (p *plan) blockOverhead() int64 {
	per := int64(rewrite.DequantizeBytes)
	if p.form.Name != pass.Dequantize.Name && p.form.Name != pass.NBits.Name {
		per = rewrite.BlockwiseBytes
		if p.encoding.Blocks.Spec.Half {
			per += rewrite.Float16ScaleBytes
		}
	}
	n := rewrite.GraphBytes(per, max(1, len(p.Consumers)), p.Base)
	if p.encoding.Blocks.BytePacked() && !p.encoding.Blocks.ForNBits {
		n += int64(8/p.encoding.Blocks.Bits-1) * rewrite.UnpackBytes
	}
	return n
}

// overhead is the bytes of nodes and names, and of zero points that are written out.
func (p *plan) overhead() int64 {
	if p.encoding.Blocks != nil {
		return p.blockOverhead()
	}
	if p.form.Name == pass.Dequantize.Name {
		return rewrite.GraphBytes(rewrite.DequantizeBytes, len(p.Consumers), p.Base) + p.encoding.Layout.NumScales()
	}
	per := int64(rewrite.DequantizeBytes)
	if p.encoding.Spec.ZeroPoint() != 0 || !p.encoding.Spec.Symmetric {
		per += rewrite.ZeroPointBytes
	}
	return rewrite.GraphBytes(per, max(1, len(p.Consumers)), p.Base)
}

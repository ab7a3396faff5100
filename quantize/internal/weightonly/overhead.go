package weightonly

import (
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/rewrite"
	"github.com/mcompress/mcompress/quantize/internal/spec"
)

// overhead is the size of nodes and names, and of zero points that are written out.
func (p *plan) overhead() int64 {
	if e, ok := p.encoding.(*spec.Blockwise); ok {
		return p.overheadBlockwise(e.Layout)
	}
	return p.overheadPerChannel(p.encoding.(*spec.PerChannel))
}

func (p *plan) overheadPerChannel(e *spec.PerChannel) int64 {
	if p.form.Name == pass.Dequantize.Name {
		return rewrite.GraphBytes(rewrite.DequantizeBytes, len(p.Consumers), p.Base) + e.Layout.NumScales()
	}
	per := int64(rewrite.DequantizeBytes)
	if e.Spec.ZeroPoint() != 0 || !e.Spec.Symmetric {
		per += rewrite.ZeroPointBytes
	}
	return rewrite.GraphBytes(per, max(1, len(p.Consumers)), p.Base)
}

func (p *plan) overheadBlockwise(b *spec.BlockLayout) int64 {
	per := int64(rewrite.DequantizeBytes)
	if p.form != pass.Dequantize && p.form != pass.NBits && p.form != pass.WideNBits {
		per = rewrite.BlockwiseBytes
		if b.Spec.Half {
			per += rewrite.Float16ScaleBytes
		}
	}
	n := rewrite.GraphBytes(per, max(1, len(p.Consumers)), p.Base)
	if b.BytePacked() && !b.ForNBits {
		n += rewrite.UnpackBytes
	}
	if b.ZeroPointsPacked() {
		n += rewrite.UnpackBytes
	}
	if p.form == pass.WideNBits {
		n += rewrite.WideBytes
	}
	return n
}

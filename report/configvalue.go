package report

import (
	"fmt"
	"strings"

	"github.com/mcompress/mcompress/pass"
)

// ConfigText states how a number of the model's configuration changed.
func ConfigText(v pass.ConfigValue) string {
	text := fmt.Sprintf("%s%s %d → %s", v.Name, ofPart(v.Submodel), v.From, strings.Trim(fmt.Sprint(v.To), "[]"))
	if len(v.To) > 1 {
		text += ", different by layer: not in configuration"
	}
	return text
}

// ofPart names the part of a model, where it is that of one with several.
func ofPart(p pass.Submodel) string {
	if p == pass.Decoder {
		return " of the decoder"
	}
	return ""
}

// config writes the numbers of the model's configuration that changed.
func (m *markdown) config(vs []pass.ConfigValue) {
	for _, v := range vs {
		m.line("%s.", prose(ConfigText(v)))
	}
}

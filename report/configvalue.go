package report

import (
	"fmt"
	"strings"

	"github.com/mcompress/mcompress/pass"
)

// ConfigText states how a number of the model's configuration changed.
func ConfigText(v pass.ConfigValue) string {
	text := fmt.Sprintf("%s %d → %s", v.Name, v.From, strings.Trim(fmt.Sprint(v.To), "[]"))
	if len(v.To) > 1 {
		text += ", different by layer: not in configuration"
	}
	return text
}

// config writes the numbers of the model's configuration that changed.
func (m *markdown) config(vs []pass.ConfigValue) {
	for _, v := range vs {
		m.line("%s.", ConfigText(v))
	}
}

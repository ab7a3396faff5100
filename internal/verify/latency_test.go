package verify

import (
	"strings"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// Runs alternate, so that the load of the machine affects both models alike.
func TestLatencyRunsInTurn(t *testing.T) {
	m := chain(1, 0)
	var order strings.Builder
	session := func(name string) *fake {
		return &fake{open(t, m, nil), func(out map[string]*ir.Array) (map[string]*ir.Array, error) {
			order.WriteString(name)
			return out, nil
		}}
	}
	l, err := Latency(t.Context(), session("a"), session("b"), made(t, m, 1), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if l.Runs < minRuns || l.Before <= 0 || l.After <= 0 || order.String() != strings.Repeat("ab", l.Runs) {
		t.Errorf("%+v after %.20s...", l, order.String())
	}
}

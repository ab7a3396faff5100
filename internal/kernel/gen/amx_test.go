package main

import (
	"encoding/hex"
	"testing"

	. "github.com/mmcloughlin/avo/reg"
)

// Instructions are those of the GNU assembler 2.40.
func TestTileInstructions(t *testing.T) {
	for _, test := range []struct {
		code []byte
		text string
		want string
	}{
		{tileConfig(number(RAX)), "{disp8} ldtilecfg 0(%rax)", "c4e278494000"},
		{tileConfig(number(R9)), "{disp8} ldtilecfg 0(%r9)", "c4c278494100"},
		{tileMove(prefixF2, 6, number(RBX), number(RDX), 64), "tileloadd 64(%rbx,%rdx,1),%tmm6", "c4e27b4b741340"},
		{tileMove(prefixF2, 1, number(R11), number(R12), 64), "tileloadd 64(%r11,%r12,1),%tmm1", "c4827b4b4c2340"},
		{tileMove(prefixF2, 7, number(R13), number(RAX), 64), "tileloadd 64(%r13,%rax,1),%tmm7", "c4c27b4b7c0540"},
		{tileMove(prefixF2, 4, number(RSI), number(R8), 0), "{disp8} tileloadd 0(%rsi,%r8,1),%tmm4", "c4a27b4b640600"},
		{tileMove(prefixF3, 3, number(R14), number(R10), -64), "tilestored %tmm3,-64(%r14,%r10,1)", "c4827a4b5c16c0"},
		{tileProduct(0, 4, 6), "tdpbusd %tmm6,%tmm4,%tmm0", "c4e2495ec4"},
		{tileProduct(3, 5, 7), "tdpbusd %tmm7,%tmm5,%tmm3", "c4e2415edd"},
		{tileZero(2), "tilezero %tmm2", "c4e27b49d0"},
		{tileRelease(), "tilerelease", "c4e27849c0"},
	} {
		if got := hex.EncodeToString(test.code); got != test.want {
			t.Errorf("%s is %s, want %s", test.text, got, test.want)
		}
	}
}

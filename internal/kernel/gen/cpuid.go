package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// cpuid exists because x/sys/cpu does not report F16C.
func cpuid() {
	function("cpuid1", "func() (ecx uint32)", "cpuid1 returns register ECX of CPUID leaf 1.")
	MOVL(U32(1), EAX)
	XORL(ECX, ECX)
	CPUID()
	Store(ECX, Return("ecx"))
	RET()
}

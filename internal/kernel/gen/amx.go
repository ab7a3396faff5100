package main

import (
	"encoding/binary"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Neither avo nor Go's assembler has the instructions of AMX: they are written as bytes, with registers chosen by hand.

// Bits pp of a VEX prefix, for the prefixes that it replaces.
const (
	noPrefix = iota
	prefix66
	prefixF3
	prefixF2
)

// Opcodes of the instructions.
const (
	opConfig  = 0x49 // LDTILECFG, TILERELEASE, TILEZERO
	opMove    = 0x4b // TILELOADD, TILESTORED
	opProduct = 0x5e // TDPBUSD
)

// tileCode returns an instruction without its operands: a VEX prefix of three bytes and the opcode. base and index are
// the registers of an address, of which the prefix has the highest bit, and vvvv is the second source; 0 without them.
func tileCode(prefix, opcode byte, base, index, vvvv int) []byte {
	const map0F38, inverted = 0x02, 0xe0
	second := byte(inverted | map0F38)
	second ^= byte(index >> 3 << 6)
	second ^= byte(base >> 3 << 5)
	return []byte{0xc4, second, byte(^vvvv&0xf)<<3 | prefix, opcode}
}

// Forms of a ModRM byte.
const (
	modDisp8, modRegister = 0x40, 0xc0
	withSIB               = 0x04
)

// tileMove is a load or store of a tile whose rows are index bytes apart, from base + disp on.
func tileMove(prefix byte, tile, base, index int, disp int8) []byte {
	return append(tileCode(prefix, opMove, base, index, 0), byte(modDisp8|tile<<3|withSIB), byte(index&7<<3|base&7),
		byte(disp))
}

// tileProduct is TDPBUSD, which adds a·b to sum.
func tileProduct(sum, a, b int) []byte {
	return append(tileCode(prefix66, opProduct, 0, 0, b), byte(modRegister|sum<<3|a))
}

func tileZero(tile int) []byte {
	return append(tileCode(prefixF2, opConfig, 0, 0, 0), byte(modRegister|tile<<3))
}

func tileRelease() []byte { return append(tileCode(noPrefix, opConfig, 0, 0, 0), modRegister) }

// tileConfig is LDTILECFG from the address in base, which must not be SP or R12: those need a SIB byte.
func tileConfig(base int) []byte {
	return append(tileCode(noPrefix, opConfig, base, 0, 0), byte(modDisp8|base&7), 0)
}

// raw emits an instruction as data.
func raw(code []byte, format string, a ...any) {
	Commentf(format, a...)
	emit := func(opcode string, value Op) { Instruction(&ir.Instruction{Opcode: opcode, Operands: []Op{value}}) }
	emit("LONG", U32(binary.LittleEndian.Uint32(code)))
	for _, b := range code[4:] {
		emit("BYTE", U8(b))
	}
}

func number(r GPPhysical) int { return int(r.PhysicalIndex()) }

func loadTile(tile int, base, index GPPhysical, disp int8) {
	raw(tileMove(prefixF2, tile, number(base), number(index), disp), "TILELOADD %d(%s)(%s*1), TMM%d", disp,
		base.Asm(), index.Asm(), tile)
}

func storeTile(tile int, base, index GPPhysical, disp int8) {
	raw(tileMove(prefixF3, tile, number(base), number(index), disp), "TILESTORED TMM%d, %d(%s)(%s*1)", tile, disp,
		base.Asm(), index.Asm())
}

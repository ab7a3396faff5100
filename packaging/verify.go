package main

import (
	"bytes"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"encoding/binary"
	"fmt"
	"strings"
)

// verify reports a binary that does not fit its target: format, architecture, libraries, and the oldest supported system.
func verify(t target, binary []byte) error {
	switch t.goos {
	case "linux":
		return verifyELF(t, binary)
	case "darwin":
		return verifyMachO(t, binary)
	}
	return verifyPE(t, binary)
}

func verifyELF(t target, data []byte) error {
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return err
	}
	if want := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[t.goarch]; f.Machine != want {
		return fmt.Errorf("the binary is for %v, not %v", f.Machine, want)
	}
	libraries, err := f.ImportedLibraries()
	if err != nil {
		return err
	}
	if static := len(libraries) == 0; static != t.static() {
		return fmt.Errorf("the binary needs the libraries %q", libraries)
	}
	if t.static() {
		return nil
	}
	// manylinux_2_17 allows symbol versions up to GLIBC_2.17. A symbol without a version is that of any glibc.
	symbols, err := f.ImportedSymbols()
	for _, symbol := range symbols {
		if symbol.Version != "" {
			return fmt.Errorf("the binary needs %s of %s", symbol.Name, symbol.Version)
		}
	}
	return err
}

func verifyMachO(t target, data []byte) error {
	f, err := macho.NewFile(bytes.NewReader(data))
	if err != nil {
		return err
	}
	if want := map[string]macho.Cpu{"amd64": macho.CpuAmd64, "arm64": macho.CpuArm64}[t.goarch]; f.Cpu != want {
		return fmt.Errorf("the binary is for %v, not %v", f.Cpu, want)
	}
	const buildVersion = 0x32 // LC_BUILD_VERSION: command, size, platform, minimum version as 16.8.8 bits
	for _, load := range f.Loads {
		raw := load.Raw()
		if len(raw) < 16 || f.ByteOrder.Uint32(raw) != buildVersion {
			continue
		}
		minimum := binary.LittleEndian.Uint32(raw[12:])
		if tag := fmt.Sprintf("macosx_%d_%d_", minimum>>16, minimum>>8&0xff); !strings.HasPrefix(t.wheel, tag) {
			return fmt.Errorf("the binary requires %s, the tag of the wheel is %s", tag, t.wheel)
		}
		return nil
	}
	return fmt.Errorf("the binary has no minimum version of macOS")
}

func verifyPE(t target, data []byte) error {
	f, err := pe.NewFile(bytes.NewReader(data))
	if err != nil {
		return err
	}
	if want := map[string]uint16{"amd64": pe.IMAGE_FILE_MACHINE_AMD64, "arm64": pe.IMAGE_FILE_MACHINE_ARM64}[t.goarch]; f.Machine != want {
		return fmt.Errorf("the binary is for machine %#x, not %#x", f.Machine, want)
	}
	return nil
}

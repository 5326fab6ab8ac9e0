package sandbox_test

import (
	"bytes"
	"encoding/binary"
	"os/exec"
	"runtime"
	"testing"

	"github.com/belay-run/belay/sandbox"
)

// socket32 is 32-bit machine code that makes a socket to the host of a virtual machine.
// The exit code is 0 if that worked, and 3 if it was denied.
var socket32 = map[string][]byte{
	"socket": {
		0xb8, 0x67, 0x01, 0x00, 0x00, // mov eax, 359
		0xbb, 0x28, 0x00, 0x00, 0x00, // mov ebx, 40
		0xb9, 0x01, 0x00, 0x00, 0x00, // mov ecx, 1
		0x31, 0xd2, // xor edx, edx
	},
	"socketcall": {
		0x6a, 0x00, 0x6a, 0x01, 0x6a, 0x28, // push 0, 1, 40
		0x89, 0xe1, // mov ecx, esp
		0xb8, 0x66, 0x00, 0x00, 0x00, // mov eax, 102
		0xbb, 0x01, 0x00, 0x00, 0x00, // mov ebx, 1
	},
}

// program32 makes a 32-bit executable of machine code.
func program32(code []byte) []byte {
	code = append(bytes.Clone(code),
		0xcd, 0x80, // int 0x80
		0x31, 0xdb, // xor ebx, ebx
		0x85, 0xc0, // test eax, eax
		0x79, 0x03, // jns +3
		0x83, 0xc3, 0x03, // add ebx, 3
		0xb8, 0x01, 0x00, 0x00, 0x00, // mov eax, 1
		0xcd, 0x80) // int 0x80
	const base, headers = 0x08048000, 52 + 32
	size := uint32(headers + len(code))
	file := []byte{0x7f, 'E', 'L', 'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	for _, field := range []any{
		uint16(2), uint16(3), uint32(1), uint32(base + headers), uint32(52), uint32(0), uint32(0),
		uint16(52), uint16(32), uint16(1), uint16(0), uint16(0), uint16(0),
		uint32(1), uint32(0), uint32(base), uint32(base), size, size, uint32(5), uint32(0x1000),
	} {
		file, _ = binary.Append(file, binary.LittleEndian, field) // cannot fail: the size is fixed
	}
	return append(file, code...)
}

// A processor can run programs of a second architecture, which have other system call
// numbers. The filter must check these numbers, too.
//
// SPEC P-12
func TestTheFilterKnowsOtherMachineCode(t *testing.T) {
	t.Parallel()
	if runtime.GOARCH != "amd64" {
		t.Skipf("NOT COVERED: machine code of 32 bits on %s", runtime.GOARCH)
	}
	for name, code := range socket32 {
		for _, kind := range []sandbox.Kind{sandbox.Namespaces, sandbox.Landlock} {
			t.Run(name+"/"+string(kind), func(t *testing.T) {
				t.Parallel()
				s, p := need(t, kind), newPlace(t)
				program := p.in + "/program"
				install(t, bytes.NewReader(program32(code)), program)
				if err := exec.CommandContext(t.Context(), program).Run(); err != nil {
					t.Skipf("NOT COVERED: this machine does not do it without a sandbox: %v", err)
				}
				if exit, output := p.run(t, s, program); exit.Code != 3 {
					t.Errorf("exit = %+v: %s: want it to be refused", exit, output)
				}
				p.policy.Network = true
				if exit, output := p.run(t, s, program); exit.Code != 0 {
					t.Errorf("exit = %+v: %s: want it to work with a network", exit, output)
				}
			})
		}
	}
}

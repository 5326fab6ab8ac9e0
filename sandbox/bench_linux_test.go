package sandbox_test

import (
	"os/exec"
	"testing"

	"github.com/belay-run/belay/sandbox"
)

// BenchmarkCommand measures how long it takes to run true in each kind of sandbox, and
// for comparison without a sandbox. Each sandbox also starts this test binary, like any
// program that calls Main.
func BenchmarkCommand(b *testing.B) {
	b.Run("bare", func(b *testing.B) { benchmark(b, []string{"true"}) })
	b.Run("restart", func(b *testing.B) { // starts this binary to do nothing
		benchmark(b, []string{executable(b), "-test.run=^$"})
	})
	for _, kind := range []sandbox.Kind{sandbox.Namespaces, sandbox.Bubblewrap, sandbox.Landlock} {
		b.Run(string(kind), func(b *testing.B) {
			s, p := need(b, kind), newPlace(b)
			p.policy.Protect = []string{p.in + "/.git/hooks", p.in + "/belay.yaml"}
			argv, err := s.Command(p.policy, []string{"true"})
			if err != nil {
				b.Fatal(err)
			}
			benchmark(b, argv)
		})
	}
}

func benchmark(b *testing.B, argv []string) {
	for b.Loop() {
		if err := exec.CommandContext(b.Context(), argv[0], argv[1:]...).Run(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSpelling measures making a command line.
func BenchmarkSpelling(b *testing.B) {
	for _, kind := range []sandbox.Kind{sandbox.Namespaces, sandbox.Bubblewrap} {
		b.Run(string(kind), func(b *testing.B) {
			s, p := need(b, kind), newPlace(b)
			p.policy.Protect = []string{p.in + "/.git/hooks", p.in + "/belay.yaml"}
			for b.Loop() {
				if _, err := s.Command(p.policy, []string{"true"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

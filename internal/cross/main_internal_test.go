package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What compiles here and not elsewhere is found, with its file and line: in the code, in tests inside and outside of a package,
// and in the packages that are imported. What compiles is no problem.
func TestCheck(t *testing.T) {
	t.Setenv("GOFLAGS", "") // go list runs in a module of its own
	t.Setenv("GOWORK", "off")
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":                     "module example.test/m\n\ngo 1.26\n",
		"m.go":                       "package m\n\nimport \"example.test/m/inner\"\n\nfunc M() int { return here() + inner.Size }\n",
		"m_linux.go":                 "package m\n\nfunc here() int { return 1 }\n",
		"m_test.go":                  "package m\n\nimport \"testing\"\n\nfunc TestM(t *testing.T) { onlyHere(t) }\n",
		"fixture_linux_test.go":      "package m\n\nimport \"testing\"\n\nfunc onlyHere(t *testing.T) { _ = M() }\n",
		"outside_test.go":            "package m_test\n\nimport (\n\t\"testing\"\n\n\t\"example.test/m\"\n)\n\nfunc TestOutside(t *testing.T) { _ = m.M() + m.Exported }\n",
		"export_test.go":             "package m\n\nvar Exported = 1\n",
		"inner/inner.go":             "package inner\n\nimport \"math\"\n\n// Size is too large where a word has 32 bits.\nconst Size int = math.MaxInt32 + 1\n",
		"inner/size_windows_test.go": "package inner\n\nvar wrong int = \"text\"\n",
		"linux/linux.go":             "package linux\n\nimport \"example.test/m/linux/only\"\n\nvar Name = only.Name\n",
		"linux/only/name_unix.go":    "//go:build unix\n\npackage only\n\nvar Name string\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for platform, want := range map[string][]string{
		"linux/amd64":   nil,
		"linux/386":     {"inner.go:6:18"},
		"windows/amd64": {"m.go:5:23: undefined: here", "m_test.go:5:28: undefined: onlyHere", "size_windows_test.go:3:17", "build constraints exclude all Go files"},
	} {
		problems, err := check(t.Context(), dir, platform)
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Join(problems, "\n")
		for _, part := range want {
			if !strings.Contains(all, part) {
				t.Errorf("%s: nothing says %q:\n%s", platform, part, all)
			}
		}
		if want == nil && all != "" {
			t.Errorf("%s: %s", platform, all)
		}
	}
	for _, platform := range []string{"linux", "linux/pdp11"} {
		if _, err := check(t.Context(), dir, platform); err == nil {
			t.Errorf("%s is a platform", platform)
		}
	}
}

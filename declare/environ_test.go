package declare_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay/declare"
)

// SPEC C-05
func TestEnvironment(t *testing.T) {
	t.Parallel()
	host := []string{
		"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/srv/u", "LANG=C", "LC_ALL=C", "LC_TIME=C", "TZ=UTC", "TMPDIR=/tmp", "USER=u", "SHELL=/bin/sh",
		"ANTHROPIC_API_KEY=sk-secret", "GITHUB_TOKEN=gh-secret", "LD_PRELOAD=/tmp/x.so", "BELAY_STORE=/x", "LCX=1", "PATHS=1", "NAMED=named", "BELAY_PHASE=forged",
	}
	p := newPlace(t)
	p.put("check.sh", "#!/bin/sh\n/usr/bin/env > seen\n")
	set := p.set(gate("command: [./check.sh]", "env: [NAMED, UNSET, FIXED=a=b]"), &declare.Options{Environ: host, Project: "/srv/work"})
	if trial := try(t, set, write); len(trial.Diagnostics) > 0 {
		t.Fatal(trial)
	}
	got := strings.Split(strings.TrimSpace(p.read("seen")), "\n")
	got = slices.DeleteFunc(got, func(entry string) bool { // remove the variables that the shell itself sets
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains([]string{"PWD", "OLDPWD", "SHLVL", "_"}, name)
	})
	slices.Sort(got)
	want := append(slices.Clone(host[:9]), "NAMED=named", "FIXED=a=b", "BELAY_PROJECT_DIR=/srv/work", "BELAY_SESSION=test", "BELAY_PHASE=tool.pre")
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the environment (-want +got):\n%s", diff)
	}
}

// SPEC C-05
func TestEnvironmentOfTheProcess(t *testing.T) {
	t.Setenv("BELAY_TEST_SECRET", "planted")
	p := newPlace(t)
	p.put("check.sh", "#!/bin/sh\n/usr/bin/env > seen\n")
	try(t, p.set(gate("command: [./check.sh]"), nil), write)
	if seen := p.read("seen"); strings.Contains(seen, "planted") || !strings.Contains(seen, "PATH=") {
		t.Errorf("the environment:\n%swant the usual variables, and no secret of the host", seen)
	}
	try(t, p.set(gate("command: [./check.sh]", "env: [BELAY_TEST_SECRET]"), nil), write)
	if !strings.Contains(p.read("seen"), "BELAY_TEST_SECRET=planted\n") {
		t.Error("a variable that the declaration names is not passed on")
	}
}

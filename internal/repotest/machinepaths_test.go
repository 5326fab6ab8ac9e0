package repotest_test

import (
	"bytes"
	"os"
	"regexp"
	"testing"
)

// machinePath finds the path of a file on one machine: below the home directories of Linux,
// macOS and Windows, and below common directories for checkouts. It does not match directly
// after a letter or a digit, because that is a part of a longer path or of an address.
var machinePath = regexp.MustCompile(`(?:^|[^A-Za-z0-9_.~})-])(/(?:home|Users|root|work)/\S*)|[A-Za-z]:\\+Users\\\S*`)

// machinePathsAllowed lists the files that may contain such a path, each with the reason.
var machinePathsAllowed = map[string]string{}

func TestNoPathsOfAMachine(t *testing.T) {
	t.Parallel()
	files, err := repository(true)
	if err != nil {
		t.Fatal(err)
	}
	needed := map[string]bool{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.IndexByte(text, 0) >= 0 {
			continue // not a text file
		}
		for i, line := range bytes.Split(text, []byte("\n")) {
			found := machinePath.Find(line)
			if found == nil {
				continue
			}
			needed[name] = true
			if machinePathsAllowed[name] == "" {
				t.Errorf("%s:%d: %q is a path of one machine: write it relative to the repository or invent one, such as /srv/app", name, i+1, bytes.TrimSpace(found))
			}
		}
	}
	for name, reason := range machinePathsAllowed {
		if !needed[name] {
			t.Errorf("machinePathsAllowed: %s no longer holds such a path (%s): remove the line", name, reason)
		}
	}
}

func TestNoPathsOfAMachineRule(t *testing.T) {
	t.Parallel()
	// The test joins the paths from parts, so that this file contains no such path.
	for _, test := range []struct {
		rule string
		line string
		want bool
	}{
		{"a Linux home is one", "see /" + "home/ada/belay", true},
		{"a macOS home is one", `"/` + `Users/ada/belay"`, true},
		{"a Windows home is one", `C:\` + `Users\ada`, true},
		{"root's home is one", "/" + "root/belay", true},
		{"a file address is one", "file:///" + "home/ada", true},
		{"a path of a server is none", "/srv/prod/" + "home/x", false},
		{"a web address is none", "https://example.com/" + "home/x", false},
		{"a path below a variable is none", "$HOME/" + "work/x", false},
		{"a system path is none", "/etc/passwd", false},
	} {
		if got := machinePath.MatchString(test.line); got != test.want {
			t.Errorf("%s: match of %q = %t, want %t", test.rule, test.line, got, test.want)
		}
	}
}

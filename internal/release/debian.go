package main

import (
	"bytes"
	"crypto/md5" // what dpkg wants in md5sums; the checksums of the release are SHA-256
	"fmt"
	"path"
	"strings"
	"time"
)

// debianFile returns the name of a platform's Debian package.
func (r *release) debianFile(p platform) string {
	return fmt.Sprintf("belay_%s_%s.deb", r.version, p.arch)
}

// debianVersion returns the version as Debian orders it: 0.2.0~rc.1 is before 0.2.0.
func (r *release) debianVersion() string { return strings.Replace(r.version, "-", "~", 1) }

// debian returns a Debian package: an ar archive of a version, a description and the files.
func (r *release) debian(p program, extras tree) ([]byte, error) {
	files := tree{"usr/bin/belay": {p.content, true}}
	for name, e := range extras {
		switch base := path.Base(name); {
		case base == "belay.bash":
			files["usr/share/bash-completion/completions/belay"] = e
		case base == "_belay":
			files["usr/share/zsh/vendor-completions/_belay"] = e
		case base == "belay.fish":
			files["usr/share/fish/vendor_completions.d/belay.fish"] = e
		case strings.HasPrefix(name, "man/"):
			page, err := gz(e.content)
			if err != nil {
				return nil, err
			}
			files["usr/share/man/man1/"+base+".gz"] = entry{content: page}
		case base == "LICENSE":
			files["usr/share/doc/belay/copyright"] = entry{content: []byte("Belay is licensed under Apache-2.0; what it contains is listed in THIRD_PARTY.txt.\n\n" + string(e.content))}
		case base == "belay.ps1": // not for Linux
		default:
			files["usr/share/doc/belay/"+base] = e
		}
	}
	var sums bytes.Buffer
	size := 0
	for _, name := range files.names() {
		fmt.Fprintf(&sums, "%x  %s\n", md5.Sum(files[name].content), name)
		size += len(files[name].content)
	}
	control, err := tree{"control": {content: r.control(p.platform, size)}, "md5sums": {content: sums.Bytes()}}.tarGz(r.time, "./")
	if err != nil {
		return nil, err
	}
	data, err := files.tarGz(r.time, "./")
	if err != nil {
		return nil, err
	}
	return ar(r.time, []part{{"debian-binary", []byte("2.0\n")}, {"control.tar.gz", control}, {"data.tar.gz", data}}), nil
}

// control returns the description of the package. bubblewrap is what confines commands where the kernel has no Landlock.
func (r *release) control(p platform, size int) []byte {
	return fmt.Appendf(nil, `Package: belay
Version: %s
Architecture: %s
Maintainer: The Belay authors <belay-run@users.noreply.github.com>
Installed-Size: %d
Section: devel
Priority: optional
Recommends: bubblewrap, ca-certificates
Homepage: https://github.com/belay-run/belay
Description: agent runtime with typed hooks at every decision
 Belay runs agents whose tools, approvals and policies are controlled by
 typed hooks. Conversations are kept in a file of the project or in
 PostgreSQL, and survive a crash.
`, r.debianVersion(), p.arch, (size+1023)/1024)
}

// A part is a file of an ar archive.
type part struct {
	name    string
	content []byte
}

// ar returns an archive in the format of ar(1).
func ar(when time.Time, parts []part) []byte {
	var b bytes.Buffer
	b.WriteString("!<arch>\n")
	for _, p := range parts {
		fmt.Fprintf(&b, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", p.name, when.Unix(), 0, 0, "100644", len(p.content))
		b.Write(p.content)
		if len(p.content)%2 == 1 {
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}

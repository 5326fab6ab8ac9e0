package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
)

// containerUser is the user of the container: the number that images without a shell use by custom.
const containerUser = 65532

// containerBase returns base.tar.gz: what the program needs around it where there is no system.
func (r *release) containerBase() ([]byte, error) {
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	w := tar.NewWriter(zipped)
	passwd := "belay:x:65532:65532:belay:/work:/nonexistent\n"
	for _, h := range []tar.Header{
		{Typeflag: tar.TypeDir, Name: "etc/", Mode: 0o755},
		{Typeflag: tar.TypeReg, Name: "etc/passwd", Mode: 0o644, Size: int64(len(passwd))},
		{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777},
		{Typeflag: tar.TypeDir, Name: "work/", Mode: 0o700, Uid: containerUser, Gid: containerUser},
	} {
		h.ModTime, h.Format = r.time, tar.FormatUSTAR
		if err := w.WriteHeader(&h); err != nil {
			return nil, err
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := w.Write([]byte(passwd)); err != nil {
				return nil, err
			}
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if err := zipped.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

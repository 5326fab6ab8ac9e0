//go:build !unix

package main

import "time"

// cpuTime returns 0, because it is not implemented for this system. Then the notes have
// no CPU time.
func cpuTime() time.Duration { return 0 }

//go:build !unix

package main

import "time"

// cpuTime returns 0, because it is not implemented for this system.
func cpuTime() time.Duration { return 0 }

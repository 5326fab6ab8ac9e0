// Package early asks the worker of "belay hook" while the program is initialized. Only the
// program belay imports it.
package early

import "github.com/belay-run/belay/internal/warmhook"

// Begun is what happened while the program was initialized. If a worker answered, the
// process has ended before. Otherwise Begun has the event, if it was read.
//
// Go initializes a package as soon as the packages that it imports are initialized. With
// this initializer the command connects after 2 ms. Without it, 10 ms pass before main
// begins.
var Begun = warmhook.Begin()

// Package convert turns the setup of another coding agent into Belay's own files, for the
// command "belay import".
//
// [New] reads the setup and returns a [Plan]. It writes nothing. The plan has every file that
// would be written, and a note for everything that could not be translated: nothing is left
// out in silence.
package convert

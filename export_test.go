package belay

// NewTransientStore lets tests run the conformance suite on the store of agents without
// Options.Store.
func NewTransientStore() Store { return newTransientStore() }

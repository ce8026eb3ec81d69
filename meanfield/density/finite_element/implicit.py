class ImplicitTransport:
    def __init__(self, space):
        raise NotImplementedError

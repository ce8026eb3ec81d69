def make_diffusion(space, diffusion):
    raise NotImplementedError

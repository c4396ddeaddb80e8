import os
from peers.base import Model
class M(Model):
    def value_and_gradient(self, theta): return 1.0, theta
    def seconds(self, theta): os._exit(3)
MODELS = {"exact": M}

"""A callback for tests of progress."""

__all__ = ["Recorder"]


class Recorder:
    """A callback that writes down what it is told, and may ask to stop."""

    def __init__(self, stop=False):
        self.stop = stop
        self.begun, self.ended, self.torn_down = [], [], 0

    def setup(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        self.begun.append(context.task_name)

    def on_fit_task_end(self, estimator, context):
        self.ended.append(context.task_name)
        return self.stop

    def teardown(self, estimator, context):
        self.torn_down += 1

/* Whether an input is at most a threshold. */
static void $NAME$(const $PIXEL$ *image, struct $NAME$_work *work, float *features)
{
    int j;

    (void)work;
    for (j = 0; j < $FEATURES$; j++) {
        features[j] = image[$NAME$_inputs[j]] <= $NAME$_limits[j] ? 1.0f : 0.0f;
    }
}

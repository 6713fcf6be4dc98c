/* Chosen pixels. */
static void $NAME$(const $PIXEL$ *image, struct $NAME$_work *work, float *features)
{
    int j;

    (void)work;
    for (j = 0; j < $FEATURES$; j++) {
        features[j] = (float)image[$NAME$_places[j]] * $UNIT$;
    }
}

/* Products of two scaled inputs. */
static void $NAME$(const $PIXEL$ *image, struct $NAME$_work *work, float *features)
{
    int i, j;

    for (i = 0; i < $INPUTS$; i++) {
        work->values[i] =
            ((float)image[$NAME$_places[i]] - $NAME$_offset[i]) * $NAME$_scale[i];
    }
    work->values[$INPUTS$] = 1.0f;
    for (j = 0; j < $FEATURES$; j++) {
        features[j] = work->values[$NAME$_pairs[2 * j]] * work->values[$NAME$_pairs[2 * j + 1]];
    }
}

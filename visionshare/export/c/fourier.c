/* Cosines and sines of projections of the scaled inputs. */
static void $NAME$(const $PIXEL$ *image, struct $NAME$_work *work, float *features)
{
    int i, j;

    for (j = 0; j < $PAIRS$; j++) {
        work->phases[j] = 0;
    }
    for (i = 0; i < $INPUTS$; i++) {
        const $MACRO$_SUM value = (($MACRO$_SUM)image[$NAME$_places[i]]
            - ($MACRO$_SUM)$NAME$_offset[i]) * ($MACRO$_SUM)$NAME$_scale[i];
        for (j = 0; j < $PAIRS$; j++) {
            work->phases[j] += value * ($MACRO$_SUM)$NAME$_frequencies[i * $PAIRS$ + j];
        }
    }
    for (j = 0; j < $FEATURES$; j++) {
        const float phase = (float)(work->phases[$NAME$_pair[j]]$STEP$);
        features[j] = $NAME$_part[j] == 0 ? cosf(phase) : sinf(phase);
    }
}

/* Cosines and sines of projections of the scaled inputs. */
static void $NAME$(const $PIXEL$ *image, struct $NAME$_work *work, float *features)
{
    int i, j;

    for (j = 0; j < $PAIRS$; j++) {
        work->phases[j] = work->rests[j] = 0;
    }
    for (i = 0; i < $INPUTS$; i++) {
        const $MACRO$_SUM value = (($MACRO$_SUM)image[$NAME$_places[i]]
            - ($MACRO$_SUM)$NAME$_offset[i]) * ($MACRO$_SUM)$NAME$_scale[i];
        for (j = 0; j < $PAIRS$; j++) {
            /* Kahan's sum: what rounding took from one addition joins the next. */
            const $MACRO$_SUM term =
                value * ($MACRO$_SUM)$NAME$_frequencies[i * $PAIRS$ + j] - work->rests[j];
            const $MACRO$_SUM sum = work->phases[j] + term;
            work->rests[j] = (sum - work->phases[j]) - term;
            work->phases[j] = sum;
        }
    }
    for (j = 0; j < $FEATURES$; j++) {
        const float phase = (float)(work->phases[$NAME$_pair[j]]$STEP$);
        features[j] = $NAME$_part[j] == 0 ? cosf(phase) : sinf(phase);
    }
}

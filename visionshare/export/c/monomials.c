/* Products of features. */
static void $NAME$(const $PIXEL$ *image, struct $NAME$_work *work, float *features)
{
    int i, j;

    $BASE$(image, &work->inner.$BASE$, work->values);
    for (j = 0; j < $FEATURES$; j++) {
        float product = work->values[$NAME$_factors[$NAME$_starts[j]]];
        for (i = $NAME$_starts[j] + 1; i < $NAME$_starts[j + 1]; i++) {
            product *= work->values[$NAME$_factors[i]];
        }
        features[j] = product;
    }
}

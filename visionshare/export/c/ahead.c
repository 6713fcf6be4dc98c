/* Return how far the best score is ahead of the second. */
static float $PREFIX$_ahead(const float scores[$MACRO$_CLASSES])
{
    float best = $MACRO$_LARGER(scores[0], scores[1]);
    float second = scores[0] > scores[1] ? scores[1] : scores[0];
    int k;

    for (k = 2; k < $MACRO$_CLASSES; k++) {
        if (scores[k] > best) {
            second = best;
            best = scores[k];
        } else if (scores[k] > second) {
            second = scores[k];
        }
    }
    return best - second;
}

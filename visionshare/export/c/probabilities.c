
void $PREFIX$_probabilities(
    const float scores[$MACRO$_CLASSES], float probabilities[$MACRO$_CLASSES])
{
    float top = scores[0], sum = 0.0f;
    int k;

    for (k = 1; k < $MACRO$_CLASSES; k++) {
        top = $MACRO$_LARGER(top, scores[k]);
    }
    for (k = 0; k < $MACRO$_CLASSES; k++) {
        probabilities[k] = expf((scores[k] - top) * $COLD$);
        sum += probabilities[k];
    }
    for (k = 0; k < $MACRO$_CLASSES; k++) {
        probabilities[k] /= sum;
    }
}

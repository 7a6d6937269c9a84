import { useState } from 'react';
import { Link } from 'wouter';
import { useFilter } from '../../app/filters';
import { useMay } from '../../app/session';
import { Segments } from '../../parts/forms/Segments';
import { Snippet } from '../../parts/forms/Snippet';
import { Card, Page } from '../../parts/Page';
import css from './FirstCall.module.css';
import { IngestSummary } from './IngestSummary';
import { KeyMaker, type MadeKey } from './KeyMaker';
import { SNIPPETS, type Way } from './snippets';
import { Watch } from './Watch';

const WAYS = Object.keys(SNIPPETS) as Way[];
const PLACEHOLDER = 'YOUR_INGEST_KEY';

/** Three steps from nothing to one's own first call on the screen: a key, a sender, and the call as it arrives. */
export default function FirstCall() {
  const may = useMay();
  const [made, setMade] = useState<MadeKey>();
  const [chosen, setWay] = useFilter<Way>('way', 'otel');
  const way = WAYS.includes(chosen) ? chosen : 'otel';
  return (
    <Page
      title="First call"
      lead="Report the calls of your application. Trueup reads what they used, prices them and compares them with your bills."
    >
      <div className={css.columns}>
        <ol className={css.steps}>
          <li>
            <Card title="1. Make an ingest key">
              <KeyMaker made={made} onMade={setMade} />
            </Card>
          </li>
          <li>
            <Card title="2. Send a call">
              <Segments
                label="Ways to send calls"
                value={way}
                onChange={setWay}
                options={WAYS.map((value) => ({ value, label: SNIPPETS[value].name }))}
              />
              <Snippet
                label={SNIPPETS[way].label}
                text={SNIPPETS[way].text(window.location.origin, made?.key ?? PLACEHOLDER)}
              />
              <p className={css.small}>
                {way === 'otel'
                  ? 'Works with any OpenTelemetry SDK or Collector that records calls to models, such as OpenLLMetry, OpenInference or the SDK instrumentations.'
                  : 'The example reports a made-up call that costs less than a cent and counts as spend. Replace it by calls of your application.'}
              </p>
            </Card>
          </li>
          <li>
            <Card title="3. See it arrive">
              {may({ scope: 'events:read' }) ? (
                <Watch keyId={made?.id} />
              ) : (
                <p>Your role cannot read calls. Ask an admin whether the call has arrived.</p>
              )}
            </Card>
          </li>
        </ol>
        {may({ scope: 'events:read' }) && (
          <Card title="Ingest health" aside={<Link href="/ingest-health">Details</Link>}>
            <IngestSummary />
          </Card>
        )}
      </div>
    </Page>
  );
}

import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { errorText, query } from '../../api/client';
import { Button } from '../../parts/forms/Button';
import { Checkboxes } from '../../parts/forms/Checkboxes';
import { Form } from '../../parts/forms/Fields';
import { newIdempotencyKey } from '../../parts/forms/idempotency';
import { Period, usePeriod } from '../../parts/forms/Period';
import { Card } from '../../parts/Page';
import { Notice } from '../../parts/States';
import { ALL_SECTIONS, SECTION_OPTIONS, type Section } from './sections';

/** Days that one report may cover. */
const DAYS_MAX = 366;

/** Requests a report. Its run appears below and continues when the page is left. */
export function Builder() {
  const client = useQueryClient();
  const period = usePeriod();
  const [sections, setSections] = useState<Section[]>(ALL_SECTIONS);
  const make = query.useMutation('post', '/api/v1/reports/management', {
    onSuccess: () => client.invalidateQueries({ queryKey: ['get', '/api/v1/reports/runs'] }),
  });
  const isTooLong = period.days > DAYS_MAX;
  return (
    <Card title="Make a report">
      <Form
        onSubmit={() =>
          make.mutate({
            params: { header: { 'Idempotency-Key': newIdempotencyKey() } },
            headers: { Prefer: 'respond-async' },
            body: { from: period.from, to: period.to, sections },
          })
        }
        actions={
          <Button
            kind="primary"
            type="submit"
            isPending={make.isPending}
            isDisabled={sections.length === 0 || isTooLong}
          >
            {make.isPending ? 'Asking for the report …' : 'Make the report'}
          </Button>
        }
      >
        <Period />
        <Checkboxes
          label="Sections"
          value={sections}
          options={SECTION_OPTIONS}
          onChange={setSections}
          error={sections.length === 0 ? 'Choose at least one section.' : undefined}
        />
        {isTooLong && <Notice kind="warn">A report covers at most {DAYS_MAX} days. Choose fewer.</Notice>}
        {make.error && <Notice kind="bad">{errorText(make.error)}</Notice>}
      </Form>
    </Card>
  );
}

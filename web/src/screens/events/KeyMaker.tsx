import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { errorText, query } from '../../api/client';
import { useMay } from '../../app/session';
import { Button } from '../../parts/forms/Button';
import { PlainForm, TextField } from '../../parts/forms/Fields';
import { Snippet } from '../../parts/forms/Snippet';
import { Notice } from '../../parts/States';
import css from './FirstCall.module.css';

/** A key that was just made. Its secret is in the memory of this page alone. */
export interface MadeKey {
  id: string;
  name: string;
  key: string;
}

/** Makes a key that can only report calls, and shows it once. */
export function KeyMaker({ made, onMade }: { made: MadeKey | undefined; onMade: (made: MadeKey) => void }) {
  const may = useMay();
  const client = useQueryClient();
  const [name, setName] = useState('my-app');
  const make = query.useMutation('post', '/api/v1/keys', {
    onSuccess: async (key) => {
      onMade(key);
      await client.invalidateQueries({ queryKey: ['get', '/api/v1/keys'] });
    },
  });
  if (made)
    return (
      <>
        <Notice kind="warn">
          Copy the key now: it is shown only this once. The examples below contain it.
        </Notice>
        <Snippet label={`Ingest key “${made.name}”`} text={made.key} />
      </>
    );
  if (!may({ scope: 'keys:admin' }))
    return <p>Your role cannot make keys. Ask an admin for a key of the role “ingest”.</p>;
  return (
    <PlainForm
      className={css.row}
      onSubmit={() => make.mutate({ body: { name: name.trim(), role: 'ingest' } })}
    >
      <div className={css.name}>
        <TextField
          label="Name of the key"
          value={name}
          onChange={setName}
          error={make.error ? errorText(make.error) : undefined}
        />
      </div>
      <Button kind="primary" type="submit" isPending={make.isPending} isDisabled={name.trim() === ''}>
        {make.isPending ? 'Making the key …' : 'Make an ingest key'}
      </Button>
      <p className={css.small}>It can report calls and read nothing.</p>
    </PlainForm>
  );
}
